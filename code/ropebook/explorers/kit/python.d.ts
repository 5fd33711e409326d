// What a script imports from a Python file are constants that stand there, and its dials: Python looks after them.
declare module "*.py";
