/**
 * Signals of this process. Each reads what happened since it was last read. None keeps a process
 * alive.
 */
import { createHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { invalid } from '../algorithms/rate.ts'
import { type CpuReading, type CpuSource, systemCpu } from './cpu.ts'
import type { Signal } from './signal.ts'

const NS_PER_MS = 1_000_000

/** How much later than planned timers fire: 99 of 100 are better, in milliseconds. */
export function eventLoopDelay(): Signal {
  const resolutionMs = 10
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  return {
    read() {
      if (histogram.count === 0) return undefined
      const p99Ms = histogram.percentile(99) / NS_PER_MS
      histogram.reset()
      return Math.max(0, p99Ms - resolutionMs)
    },
    close: () => histogram.disable(),
  }
}

/** The share of the interval in which the event loop was busy: 0 to 1. */
export function eventLoopUtilization(): Signal {
  let last = performance.eventLoopUtilization()
  return {
    read() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, last)
      last = now
      return Number.isFinite(utilization) ? utilization : undefined
    },
  }
}

/**
 * CPU time by what may be used: that of the container by its quota (cgroup v1 or v2), else that of
 * this process by the cores. 1 is all of it.
 */
export function cpu(source: CpuSource = systemCpu): Signal {
  let last: CpuReading | undefined = source()
  return {
    read() {
      const now = source()
      const spanUs = last === undefined ? 0 : now.atUs - last.atUs
      const share = last === undefined || spanUs <= 0 ? undefined : (now.usedUs - last.usedUs) / (spanUs * now.cores)
      last = now
      return share === undefined ? undefined : Math.max(0, share)
    },
  }
}

/** The share of the largest heap that is in use: 0 to 1. */
export function heap(): Signal {
  return {
    read() {
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
      return used / limit
    },
  }
}

export interface LatencySignal extends Signal {
  /** To be called with how long each call took, in milliseconds. */
  record(ms: number): void
}

/** Of the calls that were recorded in the interval, 99 of 100 were faster: in milliseconds. */
export function latency(): LatencySignal {
  const histogram = createHistogram()
  return {
    record(ms) {
      if (!(ms >= 0)) throw invalid('latency', ms, 'must be 0 milliseconds or more')
      histogram.record(Math.max(1, Math.round(ms * 1000)))
    },
    read() {
      if (histogram.count === 0) return undefined
      const p99Ms = histogram.percentile(99) / 1000
      histogram.reset()
      return p99Ms
    },
  }
}

export interface ErrorSignal extends Signal {
  /** To be called with how each call ended. */
  record(isError: boolean): void
}

/** The share of the calls recorded in the interval that failed: 0 to 1. */
export function errorRate(): ErrorSignal {
  let calls = 0
  let errors = 0
  return {
    record(isError) {
      calls += 1
      if (isError) errors += 1
    },
    read() {
      const share = calls === 0 ? undefined : errors / calls
      calls = 0
      errors = 0
      return share
    },
  }
}
