/**
 * The Chinese pages keep in step with the English ones: the same headings, level by level, the same
 * code, and links to the same pages.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const guides = readdirSync(new URL('docs/guides/', root)).filter((name) => name.endsWith('.zh-CN.md'))
const pages = ['README.zh-CN.md', ...guides.map((name) => `docs/guides/${name}`)]

interface Parts {
  readonly headings: readonly string[]
  readonly titles: readonly string[]
  readonly blocks: readonly string[]
  readonly links: readonly string[]
}

function partsOf(page: string): Parts {
  const text = readFileSync(new URL(page, root), 'utf8')
  const prose = text.replace(/^```.*?^```/gms, '')
  return {
    headings: [...prose.matchAll(/^#+(?= )/gm)].map(([level]) => level),
    titles: [...prose.matchAll(/^#+ (.+)$/gm)].map(([, title]) => title as string),
    blocks: [...text.matchAll(/^```.*?^```/gms)].map(([block]) => block),
    links: [...prose.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target as string),
  }
}

test('the guides that are needed first are there', () => {
  expect(guides).toEqual(['choosing.zh-CN.md', 'coming-from.zh-CN.md', 'parameters.zh-CN.md', 'redis.zh-CN.md'])
})

describe.each(pages)('%s', (page) => {
  const chinese = partsOf(page)
  const english = partsOf(page.replace('.zh-CN', ''))

  test('has the headings of the English page, in their order and of their levels', () => {
    expect(english.headings.length).toBeGreaterThan(3)
    expect(chinese.headings).toEqual(english.headings)
  })

  test('has the code blocks of the English page, letter for letter', () => {
    expect(english.blocks.length).toBeGreaterThan(1)
    expect(chinese.blocks).toEqual(english.blocks)
  })

  test('links to the same pages, in either language', () => {
    const targets = ({ links }: Parts) => links.map((target) => target.replace('.zh-CN', '').replace(/^#.*/, '#')).sort()
    expect(targets(chinese)).toEqual(targets(english))
  })

  test('each page links to the other', () => {
    const name = (page.split('/').at(-1) as string).replace('.zh-CN', '')
    for (const { links } of [chinese, english]) expect(links.slice(0, 2)).toEqual([name, name.replace('.md', '.zh-CN.md')])
  })

  test('links to headings that it has', () => {
    const anchors = chinese.titles.map(
      (title) =>
        `#${title
          .toLowerCase()
          .replace(/[^\p{L}\p{N} -]/gu, '')
          .replaceAll(' ', '-')}`,
    )
    expect(chinese.links.filter((target) => target.startsWith('#') && !anchors.includes(target))).toEqual([])
  })

  test('has one word for one thing: 判定 is a decision, 消耗 a cost, 限额 a limit', () => {
    const text = readFileSync(new URL(page, root), 'utf8')
    expect(text.match(/决定（decision|代价（cost|开销（cost|一个决定|多个限制|每个限制/g)).toBeNull()
  })
})
