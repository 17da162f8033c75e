"""From formal contexts to their concepts: bundles of work, conditional databases, closed-set enumeration."""
