import type { Link } from '../../link/index.ts'

/** Ends a link that nobody is going to use. */
export function dismissLink(link: Link): void {
  link.start({ dial: (dial) => dial.refuse('this link is about to end'), drain: () => {} })
  link.close()
}
