"""What all explorers share: dials in Python (``dials``), draws that look random, and in JavaScript arithmetic
(``rope.js``), dials (``dials.js``, ``knobs.js``), the address, text, drawing, and the figure on the page (``mount.js``).
"""
