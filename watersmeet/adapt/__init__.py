"""Adapt: decides while a join runs. Everything here sees facts and returns small frozen decisions; nothing touches the engine.

selection/   which caches to use, given what each costs and saves
"""
