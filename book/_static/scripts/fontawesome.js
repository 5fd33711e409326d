// The theme's icons come from its web font, so Font Awesome's 1.5 MB script is not needed.
