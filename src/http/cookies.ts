/** Where an add-on lives, seen from the API server and from the client. */
export interface AddonHome {
  /** The path of the API server's proxy to the add-on, without a slash at its end. */
  readonly prefix: string
  /** The same place at the client: empty if the add-on has an origin of its own. */
  readonly mount: string
}

/** A Set-Cookie value that stays with the add-on that sent it: without Domain, and below its path. */
export function homeCookie(value: string, home: AddonHome): string {
  const [pair = '', ...attributes] = value.split(';')
  const kept = attributes.filter((attribute) => !/^\s*(?:domain|path)\s*(?:=|$)/i.test(attribute))
  const paths = attributes.map((attribute) => /^\s*path\s*=(.*)$/is.exec(attribute)?.[1]?.trim())
  // Browsers go by the last one.
  const path = homePath(
    paths.findLast((each) => each !== undefined),
    home,
  )
  return [pair, ...kept, ...(path === undefined ? [] : [` Path=${path}`])].join(';')
}

/** Browsers may follow it upwards, to where others live. */
const climbing = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)/i

function homePath(path: string | undefined, { prefix, mount }: AddonHome): string | undefined {
  if (path !== undefined && climbing.test(path)) return `${mount}/`
  if (path !== undefined && (path === prefix || path.startsWith(`${prefix}/`)))
    return mount + path.slice(prefix.length) || '/'
  if (mount === '') return path
  // A part of the add-on stays a part of it.
  return path?.startsWith('/') ? mount + path : `${mount}/`
}
