/** Names of fields, and structured fields (RFC 9651), as far as rate limit headers need them. */

/** A token (RFC 9110). */
export function isHeaderName(name: unknown): name is string {
  return typeof name === 'string' && /^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name)
}

/**
 * A String: printable ASCII in quotes. Characters that cannot be in one become `?`, because a
 * header must not fail for a name.
 */
export function sfString(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`
}

/** A Byte Sequence of the text's UTF-8. */
export function sfBytes(text: string): string {
  const bytes = new TextEncoder().encode(text)
  return `:${btoa(String.fromCharCode(...bytes))}:`
}
