export interface Job {
  readonly path: string
  readonly traces: number
}
export class Worker {
  constructor(root: string)
  judge(job: Job, limitMs: number): Promise<{ readonly status: string; readonly message?: string }>
  stop(): Promise<void>
}
