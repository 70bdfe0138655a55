/** A few lines instead of a framework: the page changes rarely, and what changes often is drawn. */

type Child = Node | string | number | null | undefined | false

type Attributes = Readonly<Record<string, unknown>>

/**
 * An element. `on…` is a listener, `true` and `false` set or leave out an attribute, `undefined`
 * leaves it out.
 */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value as EventListener)
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value))
  }
  put(element, ...children)
  return element
}

/** Replaces what is in an element. */
export function put(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false).map(nodeOf))
}

const nodeOf = (child: Child): Node | string => (child instanceof Node ? child : String(child))

let fields = 0

/** A label above its control. */
export function field(label: string, control: HTMLElement, note?: string): HTMLElement {
  fields += 1
  control.id ||= `field-${fields}`
  if (note === undefined) return h('div', { class: 'field' }, h('label', { for: control.id }, label), control)
  const noteId = `${control.id}-note`
  control.setAttribute('aria-describedby', noteId)
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control, h('p', { class: 'note', id: noteId }, note))
}

/** A panel that is folded away where there is little room, so that what matters comes first. */
export function foldingPanel(heading: string, ...children: readonly Child[]): HTMLElement {
  const isRoomy = matchMedia('(min-width: 62rem)').matches
  return h('details', { class: 'panel fold', open: isRoomy }, h('summary', {}, h('h2', {}, heading)), ...children)
}

export function select<Value extends string>(
  options: readonly (readonly [Value, string])[],
  chosen: Value,
  change: (value: Value) => void,
): HTMLSelectElement {
  const element = h('select', { onchange: () => change(element.value as Value) })
  element.append(...options.map(([value, text]) => h('option', { value, selected: value === chosen }, text)))
  return element
}

/** Copies a text and says so on the button for a moment. */
export function copyButton(label: string, copied: string, text: () => string): HTMLButtonElement {
  const button = h('button', { type: 'button', class: 'small' }, label)
  button.addEventListener('click', async () => {
    await copy(text())
    button.textContent = copied
    setTimeout(() => {
      button.textContent = label
    }, 1_500)
  })
  return button
}

/**
 * Pages that are not served over https or from this machine have no clipboard, and others may be
 * refused it: there a selection is copied.
 */
async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    return
  } catch {
    // As above.
  }
  const area = h('textarea', { class: 'unseen' })
  area.value = text
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}
