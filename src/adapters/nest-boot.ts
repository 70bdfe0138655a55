/**
 * Checks at the start of a Nest application: limits that do not exist, and handlers that are not
 * limited.
 */
import { Inject } from '@nestjs/common'
import { DiscoveryService, MetadataScanner } from '@nestjs/core'
import { explainOnce } from '../http/warnings.ts'
import { isSkipped, NestLimits, type Target } from './nest-limits.ts'

/** The metadata that decorators of Nest's other packages leave on handlers of messages. */
const OF_MESSAGES = ['microservices:pattern', 'websockets:message_mapping']

interface Metadata {
  hasMetadata(key: string, target: object): boolean
}

const metadata = Reflect as unknown as Metadata

export class NestBoot {
  readonly #limits: NestLimits
  readonly #discovery: DiscoveryService
  readonly #scanner: MetadataScanner

  constructor(limits: NestLimits, discovery: DiscoveryService, scanner: MetadataScanner) {
    this.#limits = limits
    this.#discovery = discovery
    this.#scanner = scanner
  }

  onModuleInit(): void {
    const unlimited: string[] = []
    for (const { metatype } of [...this.#discovery.getControllers(), ...this.#discovery.getProviders()]) {
      if (typeof metatype === 'function' && metatype.prototype) this.#check(metatype, unlimited)
    }
    if (unlimited.length > 0) explainOnce('SLUICE_NEST_UNLIMITED', unlimited.join(', '))
  }

  #check(type: Target, unlimited: string[]): void {
    for (const name of this.#scanner.getAllMethodNames(type.prototype)) {
      const handler: unknown = type.prototype[name]
      if (typeof handler !== 'function') continue
      // Refuses names that no limit has.
      this.#limits.gatesOf(type, handler)
      if (isOfMessages(handler) && !isSkipped(type, handler)) unlimited.push(`${type.name}.${name}`)
    }
  }
}

function isOfMessages(handler: Target): boolean {
  return OF_MESSAGES.some((key) => metadata.hasMetadata(key, handler))
}

Inject(NestLimits)(NestBoot, undefined, 0)
Inject(DiscoveryService)(NestBoot, undefined, 1)
Inject(MetadataScanner)(NestBoot, undefined, 2)
