/**
 * The manifests in deploy/ for Envoy and Kubernetes. Neither runs here: field names are compared
 * with theirs, and every part of ours is run.
 */
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '../src/config/read.ts'
import { ROUTES } from '../src/http/routes.ts'
import { SERVE_OPTIONS } from '../src/serve.ts'
import { ENVOY, KUBERNETES, strangersIn } from './support/fields.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const textOf = (path: string) => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8')

test('names that there are not, and values of another kind, are found', () => {
  expect(strangersIn(KUBERNETES, 'Container', { name: 'x', readynessProbe: {}, ports: [{ containerPort: '80' }] })).toEqual([
    'Container.readynessProbe',
    'Container.ports[0].containerPort is no number',
  ])
  const filter = { typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit', fail_open: true } }
  expect(strangersIn(ENVOY, 'Filter', filter)).toEqual(['Filter.typed_config.fail_open'])
})

describe('the configuration of Envoy', () => {
  // biome-ignore lint/suspicious/noExplicitAny: its shape is what the first test is about.
  const envoy = parse(textOf('envoy/envoy.yaml')) as any
  const [manager] = envoy.static_resources.listeners[0].filter_chains[0].filters.map(
    (filter: { typed_config: object }) => filter.typed_config,
  )
  const [limits, router] = manager.http_filters
  const [host] = manager.route_config.virtual_hosts
  const clusters = envoy.static_resources.clusters as { name: string; health_checks?: { grpc_health_check: { service_name: string } }[] }[]
  const rules = textOf('envoy/sluice.yaml')
  let service: TestService

  beforeAll(async () => {
    service = await serviceOn(rules)
  })

  afterAll(async () => {
    await service.stop(0)
    expectNoFailure(service)
  })

  test('has only names that Envoy has', () => {
    expect(strangersIn(ENVOY, 'Bootstrap', envoy)).toEqual([])
  })

  test('asks Sluice before it routes, and clusters that there are', () => {
    expect([limits.name, router.name]).toEqual(['envoy.filters.http.ratelimit', 'envoy.filters.http.router'])
    const used = [
      limits.typed_config.rate_limit_service.grpc_service.envoy_grpc.cluster_name,
      ...host.routes.map(({ route }: { route: { cluster: string } }) => route.cluster),
    ]
    const names = clusters.map(({ name }) => name)
    for (const name of used) expect(names).toContain(name)
    // gRPC needs HTTP/2, and the service tells its health under this name.
    const sluice = clusters.find(({ name }) => name === 'sluice') as unknown as Record<string, object>
    expect(JSON.stringify(sluice.typed_extension_protocol_options)).toContain('http2_protocol_options')
    expect(clusters[0]?.health_checks?.[0]?.grpc_health_check.service_name).toBe('envoy.service.ratelimit.v3.RateLimitService')
  })

  test('waits longer than the rules wait for Redis', () => {
    const timeoutMs = 1_000 * Number.parseFloat(limits.typed_config.timeout)
    const [...patience] = rules.matchAll(/storeTimeoutMs: (\d+)/g)
    expect(patience.length).toBeGreaterThan(0)
    for (const [, ms] of patience) expect(Number(ms)).toBeLessThan(timeoutMs)
  })

  interface Action {
    readonly remote_address?: object
    readonly request_headers?: { readonly header_name: string; readonly descriptor_key: string }
    readonly generic_key?: { readonly descriptor_key: string; readonly descriptor_value: string }
  }

  /** What Envoy makes of an action, for a request from an address and with headers. */
  function entryOf({ remote_address, request_headers, generic_key }: Action, address: string, headers: Record<string, string>) {
    if (remote_address !== undefined) return { key: 'remote_address', value: address }
    if (generic_key !== undefined) return { key: generic_key.descriptor_key, value: generic_key.descriptor_value }
    return { key: request_headers?.descriptor_key as string, value: headers[request_headers?.header_name as string] as string }
  }

  const asked = async (actions: readonly Action[], address: string) => {
    const entries = actions.map((action) => entryOf(action, address, { 'x-tenant': 't1', ':method': 'POST' }))
    const client = connected(service)
    const answer = await shouldRateLimit(client, { domain: limits.typed_config.domain, descriptors: [{ entries }] })
    client.close()
    return answer
  }

  const described = [
    ...host.rate_limits,
    ...host.routes.flatMap(({ route }: { route: { rate_limits?: object[] } }) => route.rate_limits ?? []),
  ]

  test.each(described.map(({ actions }: { actions: Action[] }) => [JSON.stringify(actions), actions] as const))(
    'what it sends for %s has a rule',
    async (_, actions) => {
      const { statuses } = await asked(actions, '192.0.2.1')
      expect(statuses[0]).toMatchObject({ code: 'OK', current_limit: { name: expect.stringMatching(/^edge: /) } })
    },
  )

  test('and an address that is denied is', async () => {
    expect((await asked([{ remote_address: {} }], '203.0.113.7')).overall_code).toBe('OVER_LIMIT')
  })
})

describe('the manifests for Kubernetes', () => {
  // biome-ignore lint/suspicious/noExplicitAny: its shape is what the first test is about.
  const documents = parseAllDocuments(textOf('kubernetes/sluice.yaml')).map((document) => document.toJS() as any)
  const of = (kind: string) => documents.filter((document) => document.kind === kind)
  const [config] = of('ConfigMap')
  const [deployment] = of('Deployment')
  const pod = deployment.spec.template.spec
  const [container] = pod.containers
  const { values, positionals } = parseArgs({ args: container.args.slice(1), options: SERVE_OPTIONS, allowPositionals: true })
  const portNames = container.ports.map(({ name }: { name: string }) => name)

  test('have only names that Kubernetes has', () => {
    for (const document of documents) expect(strangersIn(KUBERNETES, document.kind, document)).toEqual([])
    expect(documents.map(({ kind, apiVersion }) => `${apiVersion} ${kind}`)).toEqual([
      'v1 ConfigMap',
      'apps/v1 Deployment',
      'v1 Service',
      'v1 Service',
      'policy/v1 PodDisruptionBudget',
    ])
  })

  test('start the service with options that it has, and a configuration without a mistake', () => {
    expect(container.args[0]).toBe('serve')
    expect(values.host).toBe('0.0.0.0')
    const [file] = positionals as [string]
    const mounts = container.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath)
    expect(mounts).toEqual(expect.arrayContaining([dirname(file), dirname(values['tokens-file'] as string)]))
    const name = file.split('/').at(-1) as string
    expect([...readConfig(config.data[name], name).limiters.keys()]).toEqual(['api'])
    const volumes = pod.volumes.map(({ name }: { name: string }) => name)
    for (const mount of container.volumeMounts) expect(volumes).toContain(mount.name)
  })

  test('probe what there is, at a port that there is', () => {
    expect([container.livenessProbe.httpGet.path, container.readinessProbe.httpGet.path]).toEqual(['/healthz', '/readyz'])
    for (const { httpGet } of [container.livenessProbe, container.readinessProbe]) {
      expect(Object.keys(ROUTES)).toContain(httpGet.path)
      expect(portNames).toContain(httpGet.port)
    }
    const port = (name: string) => container.ports.find((each: { name: string }) => each.name === name).containerPort
    expect({ http: port('http'), grpc: port('grpc'), health: `${port('health')}` }).toEqual({
      http: 8080,
      grpc: 8081,
      health: values['health-port'],
    })
    expect(deployment.spec.template.metadata.annotations['prometheus.io/port']).toBe(values['health-port'])
  })

  test('give a stop the time that it takes', () => {
    const [command, seconds] = container.lifecycle.preStop.exec.command
    expect(command).toBe('sleep')
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(
      Number(seconds) + Number.parseInt(values.drain as string, 10) + Number.parseInt(values.grace as string, 10),
    )
  })

  test('find the pods: every selector has their labels, and every Service a port that they have', () => {
    const { labels } = deployment.spec.template.metadata
    expect(deployment.spec.selector.matchLabels).toEqual(labels)
    for (const { spec } of [...of('Service')]) {
      expect(spec.selector).toEqual(labels)
      for (const { targetPort } of spec.ports) expect(portNames).toContain(targetPort)
    }
    for (const { spec } of of('PodDisruptionBudget')) expect(spec.selector.matchLabels).toEqual(labels)
    // A Service that is called sluice would set SLUICE_PORT.
    expect(pod.enableServiceLinks).toBe(false)
  })
})
