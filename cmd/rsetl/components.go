package main

import _ "github.com/rsetl/rsetl/internal/components"
