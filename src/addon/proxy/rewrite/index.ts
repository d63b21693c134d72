export { costlyCoding, wantsPage, withReadableCodings } from './accept-encoding.ts'
export { htmlStreams, isReadableCoding } from './html-stream.ts'
export { rewriteUrl, type UrlPlaces } from './rewrite-url.ts'
