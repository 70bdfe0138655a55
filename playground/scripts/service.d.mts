export interface RunningService {
  readonly url: string
  readonly port: number
  stop(): Promise<void>
}

export function startService(...args: string[]): Promise<RunningService>
