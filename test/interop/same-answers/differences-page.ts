import { everywhere } from './known/everywhere.ts'
import type { KnownDifference } from './known/known-difference.ts'
import { objects } from './known/objects.ts'
import { protocol } from './known/protocol.ts'
import { words } from './known/words.ts'

/** The sections of `docs/differences.md`. */
export const sections: readonly {
  readonly title: string
  readonly entries: readonly KnownDifference[]
}[] = [
  { title: 'In every answer', entries: everywhere },
  { title: 'Objects', entries: objects },
  { title: 'HTTP and documents', entries: protocol },
  { title: 'Messages and codes', entries: words },
]

const row = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`

/** A section as it stands in the page. */
export function sectionText({ title, entries }: (typeof sections)[number]): string {
  return [
    `## ${title}`,
    '',
    row(['', 'kube-apiserver 1.36', 'Sallyport', 'why']),
    '|---|---|---|---|',
    ...entries.map(({ what, theirs, ours, why }) => row([what, theirs, ours, why])),
    '',
  ].join('\n')
}
