/** Whether this process is one of several that serve the same, as far as what started it tells. */

interface Host {
  readonly process?: {
    readonly env?: Readonly<Record<string, string | undefined>>
    /** Whether there is a parent to talk to. */
    readonly connected?: boolean
    getBuiltinModule?(name: string): { readonly isWorker?: boolean } | undefined
  }
  readonly navigator?: { readonly userAgent?: string }
  readonly Deno?: { readonly permissions?: { querySync?(wanted: { name: 'env'; variable: string }): { readonly state: string } } }
}

/**
 * Variables that platforms set whose functions run in as many processes as there are requests at
 * once.
 */
const SERVERLESS = ['AWS_LAMBDA_FUNCTION_NAME', 'FUNCTIONS_WORKER_RUNTIME', 'FUNCTION_TARGET', 'K_SERVICE', 'VERCEL', 'NETLIFY']

export function isOneOfSeveral(host: Host = globalThis as Host): boolean {
  return (
    isClusterWorker(host) ||
    isOneOfPm2(host) ||
    SERVERLESS.some((name) => variable(host, name)) ||
    host.navigator?.userAgent === 'Cloudflare-Workers'
  )
}

/** The module is not loaded where there can be no worker: a worker has a parent to talk to. */
function isClusterWorker({ process }: Host): boolean {
  return process?.connected === true && process.getBuiltinModule?.('node:cluster')?.isWorker === true
}

/** PM2 numbers its processes from 0, and says how many were wanted. */
function isOneOfPm2(host: Host): boolean {
  const number = variable(host, 'NODE_APP_INSTANCE')
  return Number(number) > 0 || (number === '0' && variable(host, 'exec_mode') === 'cluster_mode' && variable(host, 'instances') !== '1')
}

/** Deno throws, or asks at the terminal, where a program reads one that it was not allowed. */
function variable({ process, Deno }: Host, name: string): string | undefined {
  const { state } = Deno?.permissions?.querySync?.({ name: 'env', variable: name }) ?? { state: 'granted' }
  return state === 'granted' ? process?.env?.[name] : undefined
}
