/** Hints at the start of the service by hand: the page first, then calls to try with curl. */
import type { Service } from './service.ts'

export function hints(
  { httpPort, grpcPort }: Pick<Service, 'httpPort' | 'grpcPort'>,
  limiter: string,
  hasPage: boolean,
  hasTls = false,
): string {
  const url = `${hasTls ? 'https' : 'http'}://localhost:${httpPort}`
  const post = (path: string, body: object) => `  curl -H 'content-type: application/json' -d '${JSON.stringify(body)}' ${url}${path}`
  return [
    '',
    hasPage ? `Sluice is running: ${url}/` : 'Sluice is running.',
    '',
    'Try:',
    '',
    post('/v1/decide', { limiter, key: 'user:42' }),
    post('/v1/decide', {
      decisions: [
        { limiter, key: 'a' },
        { limiter, key: 'b', cost: 3 },
      ],
    }),
    post('/v1/acquire', { limiter, key: 'user:42', timeoutMs: 2000 }),
    `  curl ${url}/v1/limiters/${limiter}/keys/user:42`,
    `  curl -X DELETE ${url}/v1/limiters/${limiter}/keys/user:42`,
    `  curl ${url}/v1/limiters`,
    `  curl -N ${url}/v1/live`,
    `  curl ${url}/metrics`,
    `  curl ${url}/openapi.json`,
    '',
    `Envoy's rate limit service is at localhost:${grpcPort}. Ctrl-C stops. The log follows, a line of JSON for each event.`,
    '',
  ].join('\n')
}
