/**
 * Metrics of this process by Node and the system, under the names of prom-client. Its own collector
 * is not used: it watches every collection of garbage, which took a tenth of the time of a
 * decision.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'

export interface ProcessMetric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  value(): number
}

export function processMetrics(): ProcessMetric[] {
  const delay = monitorEventLoopDelay()
  delay.enable()
  const gauge = (name: string, help: string, value: () => number): ProcessMetric => ({ name, help, type: 'gauge', value })
  const startedS = Math.round(Date.now() / 1000 - process.uptime())
  return [
    {
      name: 'process_cpu_seconds_total',
      help: 'Processor time of the user and of the system.',
      type: 'counter',
      value: () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
    },
    gauge('process_start_time_seconds', 'When the process started, in seconds since 1970.', () => startedS),
    gauge('process_resident_memory_bytes', 'Memory that the process holds.', () => process.memoryUsage.rss()),
    gauge('nodejs_heap_size_used_bytes', 'The heap of JavaScript that is in use.', () => process.memoryUsage().heapUsed),
    gauge('nodejs_heap_size_total_bytes', 'The heap of JavaScript.', () => process.memoryUsage().heapTotal),
    gauge('nodejs_external_memory_bytes', 'Memory of buffers, outside of the heap.', () => process.memoryUsage().external),
    gauge('nodejs_eventloop_lag_p99_seconds', 'How late the event loop was, one in a hundred times, since it was asked last.', () => {
      const seconds = delay.percentile(99) / 1e9
      delay.reset()
      return seconds
    }),
  ]
}
