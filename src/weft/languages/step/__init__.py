"""Step, the language of the Step CEP system."""
