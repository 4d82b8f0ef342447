"""The merge kernel: sorted Arrow runs in, merged Arrow rows out. One implementation of each merge rule."""
