"""Code that all explorers share. In Python: dials (``dials``) and joining scripts (``joining``). In JavaScript:
arithmetic and pseudorandom numbers (``rope.js``), dials (``dials.js``, ``knobs.js``), the address, text, drawing, and
the figure on the page (``mount.js``).
"""
