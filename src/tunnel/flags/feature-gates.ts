/** The gate of traffic from nodes to the control plane, by its name in the code and by that of the proposal. */
const knownGates: Readonly<Record<string, 'nodeToMasterTraffic'>> = {
  NodeToMasterTraffic: 'nodeToMasterTraffic',
  EnableClusterToMasterTraffic: 'nodeToMasterTraffic',
}

/** Which features are switched on. */
export interface FeatureGates {
  readonly nodeToMasterTraffic: boolean
}

/** Says what is wrong with one `NAME=true` of `--feature-gates`. */
export function checkFeatureGate(text: string): string | undefined {
  const [name = '', value, ...more] = text.split('=')
  if (!Object.hasOwn(knownGates, name)) {
    return `must name one of ${Object.keys(knownGates).join(', ')}`
  }
  const isGood = (value === 'true' || value === 'false') && more.length === 0
  return isGood ? undefined : 'must end in =true or =false'
}

/** Reads checked gates; the last word about one counts. */
export function readFeatureGates(texts: readonly string[]): FeatureGates {
  const gates = { nodeToMasterTraffic: false }
  for (const text of texts) {
    const [name = '', value] = text.split('=')
    const gate = knownGates[name]
    if (gate) gates[gate] = value === 'true'
  }
  return gates
}
