//go:build !race

package rocketmq

const race = false
