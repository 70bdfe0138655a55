/** Which limits a handler of Nest has: those that decorators name or hold, or the module's own. */
import { GUARDS_METADATA } from '@nestjs/common/constants.js'
import { SluiceError, shown } from '../errors.ts'
import { Gate } from '../http/gate.ts'
import { type HttpChoices, type HttpOptions, isNumbers, type Numbers } from '../http/options.ts'
import type { AnyRequest } from '../http/request.ts'
import type { Store } from '../stores/store.ts'
import { keepAddresses } from './addresses.ts'
import { closing, type NodeResponse } from './node-request.ts'

// biome-ignore lint/suspicious/noExplicitAny: limits of any names, with or without plans
export type NestOptions = HttpOptions<AnyRequest, any, Store, any>
export type NestModuleOptions = NestOptions & {
  /** Limits that only apply where `@Limit` names them, instead of those above. */
  readonly named?: Readonly<Record<string, NestOptions>>
}

/**
 * The argument of `@Limit`: the name of limits of the module, numbers for this place alone, or
 * choices that differ from the module's.
 */
export type NestLimit = string | Numbers | NestOptions | HttpChoices<AnyRequest>

/** A class or a handler, as Nest has them. */
// biome-ignore lint/complexity/noBannedTypes: Nest's own declaration
export type Target = Function

interface Metadata {
  defineMetadata(key: string, value: unknown, target: object): void
  getMetadata(key: string, target: object): unknown
}

/** The functions that reflect-metadata, which every Nest application loads, adds to `Reflect`. */
const metadata = Reflect as unknown as Metadata

const LIMITS = 'sluice:limits'
const DEFAULT = 'default'

type NestGate = Gate<AnyRequest, NodeResponse | undefined>

/**
 * On a handler or a controller: the limits to apply, in order. A name is one of the module's
 * `named`, or `'default'`. Numbers, such as `gcra({ ... })`, and options are for this place alone;
 * of the module's choices those hold that they do not change.
 */
export function Limit(...limits: [NestLimit, ...NestLimit[]]): MethodDecorator & ClassDecorator {
  return decorator(limits)
}

/** On a handler or a controller: not limited. */
export function SkipLimit(): MethodDecorator & ClassDecorator {
  return decorator([])
}

function decorator(limits: readonly NestLimit[]): MethodDecorator & ClassDecorator {
  return ((target: object, _property?: unknown, descriptor?: { value?: object }) => {
    metadata.defineMetadata(LIMITS, limits, descriptor?.value ?? target)
  }) as MethodDecorator & ClassDecorator
}

/** Whether a decorator says that it is not limited. */
export function isSkipped(type: Target, handler: Target): boolean {
  return said(type, handler)?.limits.length === 0
}

interface Said {
  readonly limits: readonly NestLimit[]
  /** Where it is said, to name it. */
  readonly place: string
}

function said(type: Target, handler: Target): Said | undefined {
  const ofHandler = metadata.getMetadata(LIMITS, handler) as readonly NestLimit[] | undefined
  if (ofHandler !== undefined) return { limits: ofHandler, place: `${type.name}.${handler.name}` }
  const ofType = metadata.getMetadata(LIMITS, type) as readonly NestLimit[] | undefined
  return ofType && { limits: ofType, place: type.name }
}

/** The guards that `@UseGuards` names, on the handler and on its class. */
export function guardsOf(type: Target, handler: Target): unknown[] {
  return [handler, type].flatMap((target) => (metadata.getMetadata(GUARDS_METADATA, target) as unknown[] | undefined) ?? [])
}

/**
 * The limits of the module. Guards, of which Nest makes one for each module that uses them, are
 * given it.
 */
export class NestLimits {
  readonly #default: NestGate
  readonly #named: ReadonlyMap<string, NestGate>
  /** By class and handler: a handler may be inherited by several classes. */
  readonly #found = new WeakMap<Target, Map<Target, readonly NestGate[]>>()
  /** One decorator is one set of limits, on whatever handlers of its class. */
  readonly #own = new WeakMap<object, readonly NestGate[]>()

  constructor({ named = {}, ...options }: NestModuleOptions) {
    keepAddresses()
    this.#default = new Gate(options, signalOf)
    const gates = Object.entries(named).map(([name, each]) => [name, new Gate(withPolicy(name, each), signalOf)] as const)
    this.#named = new Map<string, NestGate>([[DEFAULT, this.#default], ...gates])
  }

  /** In the order in which they are asked. */
  gatesOf(type: Target, handler: Target): readonly NestGate[] {
    const ofType = this.#found.get(type) ?? new Map<Target, readonly NestGate[]>()
    this.#found.set(type, ofType)
    const gates = ofType.get(handler) ?? this.#gatesSaid(said(type, handler))
    ofType.set(handler, gates)
    return gates
  }

  #gatesSaid(found: Said | undefined): readonly NestGate[] {
    if (found === undefined) return [this.#default]
    const known = this.#own.get(found.limits)
    if (known !== undefined) return known
    const gates = found.limits.map((limit) => this.#gate(limit, found.place))
    this.#own.set(found.limits, gates)
    return gates
  }

  #gate(limit: NestLimit, place: string): NestGate {
    if (typeof limit === 'string') return this.#byName(limit, place)
    if (!isNumbers(limit)) return this.#default.with(limit)
    return this.#default.with({ limit, limiterOptions: this.#default.limiterOptionsFor(place) })
  }

  #byName(name: string, place: string): NestGate {
    const gate = this.#named.get(name)
    if (gate !== undefined) return gate
    const known = [...this.#named.keys()].join(', ')
    throw new SluiceError('CONFIG', `@Limit(${shown(name)}) on ${place}: there is no such limit, there is ${known}`)
  }
}

/** GraphQL may have no response to watch. */
function signalOf(response: NodeResponse | undefined) {
  return response && closing(response)
}

/** A single limit is told to clients by the name that the application has for it. */
function withPolicy(name: string, options: NestOptions): NestOptions {
  const { limit, limiterOptions } = options
  return isNumbers(limit) && limiterOptions?.plans === undefined ? ({ ...options, limit: { [name]: limit } } as NestOptions) : options
}
