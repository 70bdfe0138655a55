/** Whether this process is one of several that serve the same, as far as what started it tells. */

interface Host {
  readonly process?: {
    readonly env?: Readonly<Record<string, string | undefined>>
    /** Whether there is a parent to talk to. */
    readonly connected?: boolean
    getBuiltinModule?(name: string): { readonly isWorker?: boolean } | undefined
  }
  readonly navigator?: { readonly userAgent?: string }
}

/**
 * Variables that platforms set whose functions run in as many processes as there are requests at
 * once.
 */
const SERVERLESS = ['AWS_LAMBDA_FUNCTION_NAME', 'FUNCTIONS_WORKER_RUNTIME', 'FUNCTION_TARGET', 'K_SERVICE', 'VERCEL', 'NETLIFY']

export function isOneOfSeveral({ process, navigator }: Host = globalThis as Host): boolean {
  const env = process?.env ?? {}
  return (
    isClusterWorker(process) || isOneOfPm2(env) || SERVERLESS.some((name) => env[name]) || navigator?.userAgent === 'Cloudflare-Workers'
  )
}

/** The module is not loaded where there can be no worker: a worker has a parent to talk to. */
function isClusterWorker(process: Host['process']): boolean {
  return process?.connected === true && process.getBuiltinModule?.('node:cluster')?.isWorker === true
}

/** PM2 numbers its processes from 0, and says how many were wanted. */
function isOneOfPm2({ NODE_APP_INSTANCE: number, exec_mode: mode, instances }: Readonly<Record<string, string | undefined>>): boolean {
  return Number(number) > 0 || (number === '0' && mode === 'cluster_mode' && instances !== '1')
}
