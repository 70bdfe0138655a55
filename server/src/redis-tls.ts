/** The certificates of a connection to Redis, from files that may change while the service runs. */
import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { contentOf } from './tls.ts'

export interface RedisTlsFiles {
  /** The authority that signed the certificate of Redis; undefined: one that Node knows. */
  readonly ca: string | undefined
  /** The certificate of the service for Redis; undefined: none. */
  readonly cert: string | undefined
  readonly key: string | undefined
}

/**
 * For an ioredis client, which copies its options at each attempt to connect: then the files are
 * read again. Files that are wrong by then leave it with those of before. Throws if they are wrong
 * now. Undefined: no file is named.
 */
export function redisTls(files: RedisTlsFiles, onError: (error: Error) => void): SecureContextOptions | undefined {
  if (Object.values(files).every((file) => file === undefined)) return undefined
  if ((files.cert === undefined) !== (files.key === undefined)) throw new Error('--redis-cert and --redis-key go together')
  let last = read(files)
  const now = (): SecureContextOptions => {
    try {
      last = read(files)
    } catch (error) {
      onError(error as Error)
    }
    return last
  }
  // The three are read one after the other: the first reads the files.
  return {
    get ca() {
      return now().ca
    },
    get cert() {
      return last.cert
    },
    get key() {
      return last.key
    },
  }
}

function read({ ca, cert, key }: RedisTlsFiles): SecureContextOptions {
  const content = (option: string, file: string | undefined) => (file === undefined ? undefined : contentOf(option, file))
  const options = { ca: content('--redis-ca', ca), cert: content('--redis-cert', cert), key: content('--redis-key', key) }
  try {
    createSecureContext(options)
    if (options.ca !== undefined) new X509Certificate(options.ca)
  } catch (error) {
    const named = [ca, cert, key].filter((file) => file !== undefined).join(', ')
    throw new Error(`the certificates for Redis, ${named}, cannot be used: ${(error as Error).message}`)
  }
  return options
}
