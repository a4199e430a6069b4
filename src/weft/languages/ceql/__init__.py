"""CEQL: the language of CORE and DCORE, with n-ary and second-order filters."""
