// How the report writes figures and tables.

export function table(columns, rows, figures = '---:') {
  return [columns, columns.map((_, k) => (k === 0 ? '---' : figures)), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

export function spread({ median, low, high }) {
  return `${plain(median)} (${plain(low)}–${plain(high)})`
}

/** Three digits are more than can be relied on. */
export function plain(figure) {
  return Math.abs(figure) >= 100 ? figure.toFixed(0) : `${Number(figure.toPrecision(3))}`
}
