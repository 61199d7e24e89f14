"""Where the ranks of a node are bound: forms of launchers, what they mean on a node, doubts and advice."""
