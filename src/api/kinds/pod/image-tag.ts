const component = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const domain = '(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9-]+)*(?::[0-9]+)?/)?'
const reference = new RegExp(
  `^${domain}${component}(?:/${component})*(?::([\\w][\\w.-]{0,127}))?(@[a-zA-Z0-9+._-]+:[0-9a-fA-F]{32,})?$`,
)

/** The tag of an image's name: `latest` when neither tag nor digest is given, empty for no name. */
export function imageTag(image: string): string {
  // Longer names are refused by every registry; the limit also bounds the work of the pattern.
  if (image.length > 4096) return ''
  const match = reference.exec(image)
  if (!match) return ''
  const [, tag, digest] = match
  return tag ?? (digest === undefined ? 'latest' : '')
}

/** How to pull an image when nobody said: what moves is asked for each time. */
export const defaultPullPolicy = (image: string): string =>
  imageTag(image) === 'latest' ? 'Always' : 'IfNotPresent'
