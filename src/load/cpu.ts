/**
 * CPU time: of the container that this process is in, where it has a quota; else of the process.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { performance } from 'node:perf_hooks'

export interface CpuReading {
  readonly atUs: number
  /** CPU time that was used until now. */
  readonly usedUs: number
  /** How many cores may be used: a quota may be a part of one. */
  readonly cores: number
}

export type CpuSource = () => CpuReading

/** A file as text; undefined if it cannot be read. */
export type ReadText = (path: string) => string | undefined

const CGROUP = '/sys/fs/cgroup'

export const systemCpu: CpuSource = () => cpuReading(readText, processUs, availableParallelism(), performance.now() * 1000)

export function cpuReading(read: ReadText, ownUs: () => number, cores: number, atUs: number): CpuReading {
  const limited = versionTwo(read) ?? versionOne(read)
  // A quota above the cores of the machine allows no more than those.
  if (limited !== undefined) return { atUs, usedUs: limited.usedUs, cores: Math.min(limited.cores, cores) }
  return { atUs, usedUs: ownUs(), cores }
}

interface Limited {
  readonly usedUs: number
  readonly cores: number
}

/** cgroup v2: `cpu.max` has quota and period, or `max` for none. */
function versionTwo(read: ReadText): Limited | undefined {
  for (const folder of [CGROUP, `${CGROUP}${ownPath(read)}`]) {
    const [quota, period] = (read(`${folder}/cpu.max`) ?? '').trim().split(' ').map(Number)
    const used = /^usage_usec (\d+)$/m.exec(read(`${folder}/cpu.stat`) ?? '')?.[1]
    if (isQuota(quota, period) && used !== undefined) return { usedUs: Number(used), cores: (quota as number) / (period as number) }
  }
  return undefined
}

/** cgroup v1: a quota of -1 is none; CPU time is in nanoseconds. */
function versionOne(read: ReadText): Limited | undefined {
  const number = (path: string) => Number(read(`${CGROUP}/${path}`) ?? Number.NaN)
  const quota = number('cpu/cpu.cfs_quota_us')
  const period = number('cpu/cpu.cfs_period_us')
  const usedNs = number('cpuacct/cpuacct.usage')
  return isQuota(quota, period) && Number.isFinite(usedNs) ? { usedUs: usedNs / 1000, cores: quota / period } : undefined
}

function isQuota(quota: number | undefined, period: number | undefined): boolean {
  return (quota as number) > 0 && (period as number) > 0
}

/** Where this process is in the tree of groups, if it sees the tree from above. */
function ownPath(read: ReadText): string {
  return /^0::(\/.*)$/m.exec(read('/proc/self/cgroup') ?? '')?.[1] ?? ''
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function processUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}
