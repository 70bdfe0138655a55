/** Which of our forms a client would rather read, by its `Accept` (RFC 9110, 12.5.1). */

export type BodyForm = 'json' | 'text' | 'html'

/** In the order in which we would rather send them; each goes by several media types. */
const FORMS: readonly { readonly form: BodyForm; readonly types: readonly string[] }[] = [
  { form: 'json', types: ['application/problem+json', 'application/json', 'application/*', '*/*'] },
  { form: 'text', types: ['text/plain', 'text/*', '*/*'] },
  { form: 'html', types: ['text/html', 'text/*', '*/*'] },
]

/** The usual value of clients that are no browsers: not worth taking apart. */
const PLAIN = new Set(['*/*', 'application/json', 'application/json, text/plain, */*'])

/** No client needs more to say what it reads; the rest is not looked at. */
const MAX_LENGTH = 1000

/** The form with the highest quality; ours to choose among equals, and if none is wanted at all. */
export function preferredForm(accept: string | undefined): BodyForm {
  if (accept === undefined || accept === '' || PLAIN.has(accept)) return 'json'
  const qualities = qualitiesOf(accept.slice(0, MAX_LENGTH))
  let best: { form: BodyForm; quality: number } = { form: 'json', quality: 0 }
  for (const { form, types } of FORMS) {
    const type = types.find((each) => qualities.has(each))
    const quality = type === undefined ? 0 : (qualities.get(type) as number)
    if (quality > best.quality) best = { form, quality }
  }
  return best.form
}

function qualitiesOf(accept: string): Map<string, number> {
  const qualities = new Map<string, number>()
  for (const range of accept.toLowerCase().split(',')) {
    const [type, ...parameters] = range.split(';').map((part) => part.trim())
    const given = parameters.find((parameter) => parameter.startsWith('q='))
    const quality = given === undefined ? 1 : Number(given.slice(2))
    if (quality >= 0 && quality <= 1) qualities.set(type as string, quality)
  }
  return qualities
}
