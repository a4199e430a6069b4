"""What is known of a program before it runs: who feeds whom, how far it looks back, which parts are alike."""
