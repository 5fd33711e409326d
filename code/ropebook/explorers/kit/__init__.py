"""Code that all explorers share.

In Python: the dials (``dials``), joining of scripts (``joining``), and still figures (``stills``). In JavaScript:
arithmetic and pseudorandom numbers (``rope.js``), the dials (``dials.js`` and ``knobs.js``), the page address, text,
drawing, and the figure on the page (``mount.js``).
"""
