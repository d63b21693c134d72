const packages: Readonly<Record<string, string>> = {
  'meta/v1': 'io.k8s.apimachinery.pkg.apis.meta.v1',
  runtime: 'io.k8s.apimachinery.pkg.runtime',
}

/** The name of a struct in OpenAPI, for example `io.k8s.api.core.v1.Pod`. */
export function openapiName(structName: string): string {
  const dot = structName.lastIndexOf('.')
  const folder = structName.slice(0, dot)
  const prefix = packages[folder] ?? `io.k8s.api.${folder.replace('/', '.')}`
  return `${prefix}.${structName.slice(dot + 1)}`
}

/** A reference to a schema of the same document. */
export const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` })
