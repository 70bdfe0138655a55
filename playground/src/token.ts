/**
 * The token of the service, if it wants one. Kept while the page is open, for all tabs, and nowhere
 * else.
 */

let token = ''

export const tokenNow = (): string => token

export function useToken(text: string): void {
  token = text.trim()
}

export const authorization = (): Record<string, string> => bearer(token)

export const bearer = (text: string): Record<string, string> => (text === '' ? {} : { authorization: `Bearer ${text}` })

export const UNAUTHORIZED = 401
