/** The page: a header, and one of three tabs under it. */
import { h, put, select } from './dom.ts'
import { liveView } from './live/view.ts'
import { type Host, playgroundView, type View } from './playground/view.ts'
import { isSceneAddress } from './scenes/state.ts'
import { sceneView } from './scenes/view.ts'
import { LANGUAGES, type Language, store, storedLanguage, storedTheme, THEMES, type Theme, textsOf } from './settings.ts'
import { tryView } from './try/view.ts'

const TABS = ['playground', 'live', 'try'] as const
type Tab = (typeof TABS)[number]

let language: Language
let theme: Theme
/** The scene of the playground, kept while another tab is open. */
let playgroundAddress = ''
let view: View | undefined
let app: HTMLElement
let script = ''

function opened(): { readonly tab: Tab; readonly rest: string } {
  const [name, rest = ''] = location.hash.slice(1).split(/\?(.*)/s) as [string, string?]
  return { tab: TABS.find((tab) => tab === name) ?? 'playground', rest }
}

/** What the address bar says of the playground. */
function readAddress(): void {
  const { tab, rest } = opened()
  if (tab === 'playground' && rest !== '') playgroundAddress = rest
}

function show(): void {
  const { tab } = opened()
  const texts = textsOf(language)
  // All is made anew: the focus goes back to the header if it was there.
  const isInHeader = app.querySelector('header')?.contains(document.activeElement) === true
  view?.close()
  document.documentElement.lang = langOf(language)
  document.title = texts.title
  view = viewOf(tab)
  put(
    app,
    h('a', { class: 'skip', href: '#content', onclick: skip }, texts.skip),
    header(tab),
    h('main', { id: 'content', tabindex: -1 }, view.element),
    h('footer', {}, texts.footer),
  )
  if (isInHeader) app.querySelector<HTMLElement>('[aria-current=page]')?.focus()
}

function viewOf(tab: Tab): View {
  const texts = textsOf(language)
  if (tab === 'live') return liveView(texts)
  if (tab === 'try') return tryView(texts)
  const host: Host = { script, remember, open }
  return isSceneAddress(playgroundAddress) ? sceneView(playgroundAddress, texts, host) : playgroundView(playgroundAddress, texts, host)
}

/** Another example, in a view of its own: who chose it stands on the choice again. */
function open(address: string): void {
  remember(address)
  show()
  app.querySelector<HTMLElement>('[data-part=example]')?.focus()
}

/**
 * Browsers object to more than a hundred changes of the address in half a minute, and a hand that
 * draws makes many more.
 */
const WRITE_EVERY_MS = 400
let isWriting = false

/** Every change comes into the address bar, and none of them into the history. */
function remember(address: string): void {
  playgroundAddress = address
  app.querySelector('[data-tab=playground]')?.setAttribute('href', `#playground?${address}`)
  if (!isWriting) setTimeout(write, WRITE_EVERY_MS)
  isWriting = true
}

function write(): void {
  isWriting = false
  if (opened().tab === 'playground') history.replaceState(null, '', `#playground?${playgroundAddress}`)
}

/** The part after # is ours, so a link to a place on the page goes there by itself. */
function skip(event: Event): void {
  event.preventDefault()
  app.querySelector<HTMLElement>('#content')?.focus()
}

function header(current: Tab): HTMLElement {
  const { title, switches } = textsOf(language)
  const languages = h('div', { class: 'pair', role: 'group', 'aria-label': switches.language }, ...languageButtons())
  return h(
    'header',
    {},
    h('a', { class: 'brand', href: '#playground' }, h('span', { class: 'mark', 'aria-hidden': 'true' }), 'Sluice'),
    h('nav', { 'aria-label': title }, ...TABS.map((tab) => tabLink(tab, tab === current))),
    h('div', { class: 'switches' }, languages, themeSelect()),
  )
}

function tabLink(tab: Tab, isCurrent: boolean): HTMLElement {
  const rest = tab === 'playground' && playgroundAddress !== '' ? `?${playgroundAddress}` : ''
  const attributes = { href: `#${tab}${rest}`, 'data-tab': tab, 'aria-current': isCurrent ? 'page' : undefined }
  return h('a', attributes, textsOf(language).tabs[tab])
}

function languageButtons(): HTMLElement[] {
  return (Object.keys(LANGUAGES) as Language[]).map((name) => {
    const pressed = String(name === language)
    const onclick = () => speak(name)
    return h('button', { type: 'button', lang: langOf(name), 'data-language': name, 'aria-pressed': pressed, onclick }, LANGUAGES[name])
  })
}

function speak(name: Language): void {
  language = name
  store('language', name)
  show()
  app.querySelector<HTMLElement>(`[data-language=${name}]`)?.focus()
}

/** For the attribute `lang`. */
const langOf = (name: Language): string => (name === 'zh' ? 'zh-CN' : 'en')

function themeSelect(): HTMLElement {
  const { switches } = textsOf(language)
  const options = THEMES.map((name) => [name, switches.themes[name]] as const)
  const themes = select(options, theme, (name) => {
    theme = name
    store('theme', name)
    paint()
  })
  themes.setAttribute('aria-label', switches.theme)
  themes.dataset.part = 'theme'
  return themes
}

function paint(): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme satisfies Theme
  view?.repaint()
}

/** `scriptUrl` is where this script is, to start its worker from. */
export function startPage(scriptUrl: string): void {
  script = scriptUrl
  app = document.querySelector('#app') as HTMLElement
  language = storedLanguage()
  theme = storedTheme()
  addEventListener('hashchange', () => {
    readAddress()
    show()
    // The header is new too: the focus stays on the chosen tab.
    app.querySelector<HTMLElement>('[aria-current]')?.focus()
  })
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => view?.repaint())
  readAddress()
  paint()
  show()
}
