import type { Io } from '../io.ts'
import type { JoinOptions } from './join-options.ts'
import type { JoinOutcome } from './join-outcome.ts'

/** Prints what a join has done, for a person or for a program. */
export function tellOutcome(outcome: JoinOutcome, { output }: JoinOptions, io: Io): void {
  const text = output === 'json' ? JSON.stringify(summary(outcome)) : sentence(outcome)
  // A kubeconfig on standard output stands alone.
  if (outcome.kubeconfig === '-') io.stderr(`${text}\n`)
  else io.stdout(`${text}\n`)
}

function summary({ did, cluster, kubeconfig, discovery, identity, certDir }: JoinOutcome): object {
  return {
    did,
    kubeconfig,
    server: cluster.server,
    ...(discovery && {
      advertised: discovery.advertised,
      ...(discovery.asked !== undefined && { asked: discovery.asked }),
      proofs: discovery.proofs,
      pins: discovery.pins,
      warnings: discovery.warnings,
    }),
    ...identity,
    ...(certDir !== undefined && { certDir }),
  }
}

function sentence({ did, cluster, kubeconfig, identity }: JoinOutcome): string {
  const file = kubeconfig === '-' ? 'the kubeconfig above' : kubeconfig
  if (!identity)
    return `${file} says where ${cluster.server} is and whom to trust; it has no user yet`
  const { username, expires } = identity
  const until = `is ${username} at ${cluster.server} until ${expires}`
  if (did === 'present') return `${file} ${until}: nothing to do (--force joins anew)`
  return did === 'renewed' ? `${file} ${until}: renewed` : `${file} ${until}`
}
