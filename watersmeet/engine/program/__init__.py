"""The program: a Plan compiled into pipelines, and laid out as tables of integers that the kernel reads."""
