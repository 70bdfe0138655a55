/**
 * The fields that Envoy and Kubernetes have for what deploy/ uses, and what each holds: read off
 * Envoy's protos (API v3) and Kubernetes' types (1.30). A name that is not here is a typo, or wants
 * to be looked up and added. `[]` behind a type: a list; `{}`: a mapping of any names.
 */
export type Schema = Readonly<Record<string, Readonly<Record<string, string>>>>

const text = 'text'
const number = 'number'
const flag = 'flag'

export const ENVOY: Schema = {
  Bootstrap: { static_resources: 'StaticResources', admin: 'Admin' },
  StaticResources: { listeners: 'Listener[]', clusters: 'Cluster[]' },
  Admin: { address: 'Address' },
  Listener: { name: text, address: 'Address', filter_chains: 'FilterChain[]' },
  Address: { socket_address: 'SocketAddress' },
  SocketAddress: { address: text, port_value: number },
  FilterChain: { filters: 'Filter[]' },
  Filter: { name: text, typed_config: 'Any' },
  HttpConnectionManager: {
    stat_prefix: text,
    use_remote_address: flag,
    xff_num_trusted_hops: number,
    http_filters: 'Filter[]',
    route_config: 'RouteConfiguration',
  },
  RateLimit: {
    domain: text,
    timeout: text,
    failure_mode_deny: flag,
    rate_limited_as_resource_exhausted: flag,
    rate_limit_service: 'RateLimitServiceConfig',
  },
  RateLimitServiceConfig: { transport_api_version: text, grpc_service: 'GrpcService' },
  GrpcService: { envoy_grpc: 'EnvoyGrpc', initial_metadata: 'HeaderValue[]' },
  EnvoyGrpc: { cluster_name: text },
  HeaderValue: { key: text, value: text },
  Router: {},
  RouteConfiguration: { name: text, virtual_hosts: 'VirtualHost[]' },
  VirtualHost: { name: text, domains: 'text[]', rate_limits: 'Actions[]', routes: 'Route[]' },
  Actions: { actions: 'Action[]' },
  Action: { remote_address: 'Empty', request_headers: 'RequestHeaders', generic_key: 'GenericKey' },
  RequestHeaders: { header_name: text, descriptor_key: text },
  GenericKey: { descriptor_key: text, descriptor_value: text },
  Empty: {},
  Route: { match: 'RouteMatch', route: 'RouteAction' },
  RouteMatch: { path: text, prefix: text },
  RouteAction: { cluster: text, include_vh_rate_limits: flag, rate_limits: 'Actions[]' },
  Cluster: {
    name: text,
    type: text,
    connect_timeout: text,
    lb_policy: text,
    typed_extension_protocol_options: 'Any{}',
    health_checks: 'HealthCheck[]',
    load_assignment: 'ClusterLoadAssignment',
  },
  HttpProtocolOptions: { explicit_http_config: 'ExplicitHttpConfig' },
  ExplicitHttpConfig: { http2_protocol_options: 'Empty' },
  HealthCheck: {
    timeout: text,
    interval: text,
    unhealthy_threshold: number,
    healthy_threshold: number,
    grpc_health_check: 'GrpcHealthCheck',
  },
  GrpcHealthCheck: { service_name: text },
  ClusterLoadAssignment: { cluster_name: text, endpoints: 'LocalityLbEndpoints[]' },
  LocalityLbEndpoints: { lb_endpoints: 'LbEndpoint[]' },
  LbEndpoint: { endpoint: 'Endpoint' },
  Endpoint: { address: 'Address' },
}

const object = { apiVersion: text, kind: text, metadata: 'ObjectMeta' }

export const KUBERNETES: Schema = {
  ObjectMeta: { name: text, labels: 'text{}', annotations: 'text{}' },
  LabelSelector: { matchLabels: 'text{}' },
  ConfigMap: { ...object, data: 'text{}' },
  Deployment: { ...object, spec: 'DeploymentSpec' },
  Service: { ...object, spec: 'ServiceSpec' },
  PodDisruptionBudget: { ...object, spec: 'PodDisruptionBudgetSpec' },
  DeploymentSpec: { replicas: number, selector: 'LabelSelector', strategy: 'DeploymentStrategy', template: 'PodTemplateSpec' },
  DeploymentStrategy: { type: text, rollingUpdate: 'RollingUpdateDeployment' },
  RollingUpdateDeployment: { maxUnavailable: number, maxSurge: number },
  PodTemplateSpec: { metadata: 'ObjectMeta', spec: 'PodSpec' },
  PodSpec: {
    terminationGracePeriodSeconds: number,
    enableServiceLinks: flag,
    automountServiceAccountToken: flag,
    securityContext: 'PodSecurityContext',
    topologySpreadConstraints: 'TopologySpreadConstraint[]',
    containers: 'Container[]',
    volumes: 'Volume[]',
  },
  PodSecurityContext: { runAsNonRoot: flag, runAsUser: number, seccompProfile: 'SeccompProfile' },
  SeccompProfile: { type: text },
  TopologySpreadConstraint: { maxSkew: number, topologyKey: text, whenUnsatisfiable: text, labelSelector: 'LabelSelector' },
  Container: {
    name: text,
    image: text,
    args: 'text[]',
    env: 'EnvVar[]',
    ports: 'ContainerPort[]',
    livenessProbe: 'Probe',
    readinessProbe: 'Probe',
    lifecycle: 'Lifecycle',
    resources: 'ResourceRequirements',
    securityContext: 'SecurityContext',
    volumeMounts: 'VolumeMount[]',
  },
  EnvVar: { name: text, valueFrom: 'EnvVarSource' },
  EnvVarSource: { secretKeyRef: 'SecretKeySelector' },
  SecretKeySelector: { name: text, key: text },
  ContainerPort: { name: text, containerPort: number },
  Probe: { httpGet: 'HTTPGetAction', periodSeconds: number, timeoutSeconds: number, failureThreshold: number },
  HTTPGetAction: { path: text, port: text },
  Lifecycle: { preStop: 'LifecycleHandler' },
  LifecycleHandler: { exec: 'ExecAction' },
  ExecAction: { command: 'text[]' },
  ResourceRequirements: { requests: 'text{}', limits: 'text{}' },
  SecurityContext: { allowPrivilegeEscalation: flag, readOnlyRootFilesystem: flag, capabilities: 'Capabilities' },
  Capabilities: { drop: 'text[]' },
  VolumeMount: { name: text, mountPath: text, readOnly: flag },
  Volume: { name: text, configMap: 'ConfigMapVolumeSource', secret: 'SecretVolumeSource' },
  ConfigMapVolumeSource: { name: text },
  SecretVolumeSource: { secretName: text, items: 'KeyToPath[]' },
  KeyToPath: { key: text, path: text },
  ServiceSpec: { clusterIP: text, selector: 'text{}', ports: 'ServicePort[]' },
  ServicePort: { name: text, port: number, targetPort: text, appProtocol: text },
  PodDisruptionBudgetSpec: { maxUnavailable: number, selector: 'LabelSelector' },
}

const SCALARS: Readonly<Record<string, string>> = { text: 'string', number: 'number', flag: 'boolean' }

/** Everything in a document that its schema does not have, with the way to it. */
export function strangersIn(schema: Schema, type: string, value: unknown, path = type): string[] {
  if (type.endsWith('[]')) {
    if (!Array.isArray(value)) return [`${path} is no list`]
    return value.flatMap((each, k) => strangersIn(schema, type.slice(0, -2), each, `${path}[${k}]`))
  }
  if (Object.hasOwn(SCALARS, type)) return typeof value === SCALARS[type] ? [] : [`${path} is no ${type}`]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path} is no mapping`]
  if (type.endsWith('{}'))
    return Object.entries(value).flatMap(([name, each]) => strangersIn(schema, type.slice(0, -2), each, `${path}.${name}`))
  // Envoy says at its own place what it is.
  const { '@type': url, ...fields } = value as { '@type'?: string } & Record<string, unknown>
  const { [url?.split('.').at(-1) ?? type]: known } = schema
  if (known === undefined) return [`${path}: nothing here knows ${url ?? type}`]
  return Object.entries(fields).flatMap(([name, each]) =>
    Object.hasOwn(known, name) ? strangersIn(schema, known[name] as string, each, `${path}.${name}`) : [`${path}.${name}`],
  )
}
