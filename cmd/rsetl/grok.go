package main

import "github.com/spf13/cobra"

func (a *app) cmdGrok() *cobra.Command { return &cobra.Command{Use: "grok"} }
