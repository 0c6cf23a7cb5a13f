//go:build race

package rocketmq

const race = true
