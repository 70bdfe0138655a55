/**
 * TLS for both ports, from files that may change while the service runs: certificates live for
 * weeks, and the service for longer.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { createSecureContext, type TlsOptions, Server as TlsServer } from 'node:tls'

export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** Clients must show a certificate that one of these has signed; undefined: none. */
  readonly clientCa: string | undefined
}

/** A client that takes longer to agree on keys is cut off. */
const HANDSHAKE_TIMEOUT_MS = 10_000

export class Tls {
  readonly #files: TlsFiles
  readonly #servers: TlsServer[] = []
  #options: TlsOptions

  /** Throws if the files are no certificate and its key. */
  constructor(files: TlsFiles) {
    this.#files = files
    this.#options = read(files)
  }

  get files(): string[] {
    const { cert, key, clientCa } = this.#files
    return clientCa === undefined ? [cert, key] : [cert, key, clientCa]
  }

  get options(): TlsOptions {
    return this.#options
  }

  get wantsCertificates(): boolean {
    return this.#files.clientCa !== undefined
  }

  /** When the certificate ends, for the log. */
  get validTo(): string {
    return new X509Certificate(this.#options.cert as Buffer).validTo
  }

  /** A server that goes over to other files with the next client. */
  add(server: Server): void {
    if (server instanceof TlsServer) this.#servers.push(server)
  }

  /** Throws, and changes nothing, if the files are wrong. True if they are others than before. */
  reload(): boolean {
    const next = read(this.#files)
    const isSame = [next.cert, next.key, next.ca].join('\0') === [this.#options.cert, this.#options.key, this.#options.ca].join('\0')
    if (isSame) return false
    this.#options = next
    for (const server of this.#servers) server.setSecureContext(next)
    return true
  }
}

function read({ cert, key, clientCa }: TlsFiles): TlsOptions {
  const options: TlsOptions = {
    cert: contentOf('--tls-cert', cert),
    key: contentOf('--tls-key', key),
    minVersion: 'TLSv1.2',
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    ...(clientCa === undefined ? {} : { ca: contentOf('--tls-client-ca', clientCa), requestCert: true, rejectUnauthorized: true }),
  }
  try {
    createSecureContext(options)
    if (options.ca !== undefined) new X509Certificate(options.ca as Buffer)
  } catch (error) {
    throw new Error(`the certificate ${cert} and the key ${key} cannot be used: ${(error as Error).message}`)
  }
  return options
}

export function contentOf(option: string, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new Error(`${option} ${file} cannot be read: ${(error as Error).message}`)
  }
}

/** From options or variables. Undefined: no TLS. */
export function tlsFrom(cert: string | undefined, key: string | undefined, clientCa: string | undefined): Tls | undefined {
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined
  if (cert === undefined || key === undefined) throw new Error('--tls-cert and --tls-key go together')
  return new Tls({ cert, key, clientCa })
}
