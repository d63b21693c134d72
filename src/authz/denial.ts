import { ApiError, type Attributes, type Decision, forbidden, goQuote } from '../core/index.ts'

const markup: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Names can hold anything, and browsers may show the message: it must not look like HTML. */
const withoutMarkup = (text: string): string => text.replace(/[&<>]/g, (c) => markup[c] ?? c)

/** Who cannot do what, in the sentence that Kubernetes uses. */
export function describeDenial({ user, verb, resource, path }: Attributes): string {
  const who = `User ${goQuote(user.username)} cannot ${verb}`
  if (!resource) return withoutMarkup(`${who} path ${goQuote(path ?? '')}`)
  const { subresource, namespace, group } = resource
  const what = subresource ? `${resource.resource}/${subresource}` : resource.resource
  const where = namespace ? `in the namespace ${goQuote(namespace)}` : 'at the cluster scope'
  return withoutMarkup(`${who} resource ${goQuote(what)} in API group ${goQuote(group)} ${where}`)
}

/** The 403 for a request that nobody allowed. */
export function denial(attributes: Attributes, decision: Decision): ApiError {
  const sentence = describeDenial(attributes)
  const why = decision.reason === '' ? sentence : `${sentence}: ${decision.reason}`
  const { resource } = attributes
  if (resource) return forbidden(resource, resource.name, why)
  return new ApiError('Forbidden', `forbidden: ${why}`, { details: {} })
}
