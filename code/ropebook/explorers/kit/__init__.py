"""What all explorers share. In Python: dials (``dials``) and how a script is joined (``joining``). In JavaScript: arithmetic
and draws that look random (``rope.js``), dials (``dials.js``, ``knobs.js``), the address, text, drawing, and the figure on
the page (``mount.js``).
"""
