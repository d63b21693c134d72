type Labels = Readonly<Record<string, string>> | undefined

/** Labels under Kubernetes' own domains that a node may give itself. */
const nodeLabels: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
])

const within = (domain: string, parent: string) =>
  domain === parent || domain.endsWith(`.${parent}`)

function isForbidden(label: string): boolean {
  const slash = label.indexOf('/')
  const domain = slash < 0 ? '' : label.slice(0, slash)
  if (!within(domain, 'kubernetes.io') && !within(domain, 'k8s.io')) return false
  if (nodeLabels.has(label)) return false
  return !within(domain, 'kubelet.kubernetes.io') && !within(domain, 'node.kubernetes.io')
}

/** The labels that differ and that a node may not touch, so that it cannot draw workloads to itself. */
export function forbiddenNodeLabels(labels: Labels, old: Labels): string[] {
  const keys = new Set([...Object.keys(labels ?? {}), ...Object.keys(old ?? {})])
  return [...keys].filter((key) => labels?.[key] !== old?.[key] && isForbidden(key)).toSorted()
}
