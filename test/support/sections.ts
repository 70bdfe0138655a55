/** The state of a limit in what READ_STRING answers: where limits share a key, names and states take turns. */
export function sectionOf(name: string, reply: unknown): string | undefined {
  if (!Array.isArray(reply)) return (reply ?? undefined) as string | undefined
  const place = reply.findIndex((text, k) => k % 2 === 0 && text === name)
  return place < 0 ? undefined : reply[place + 1]
}
