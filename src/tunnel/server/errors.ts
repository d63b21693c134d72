import { SallyportError } from '../../core/index.ts'

/** No agent is connected that could take a dial. */
export class NoAgentAvailable extends SallyportError {
  readonly code = 'TUNNEL_NO_AGENT'

  constructor() {
    super('No agent available')
  }
}

/** An agent may not connect. The message goes to the agent; why exactly is in `detail`, for the log. */
export class AgentRefused extends SallyportError {
  readonly code = 'TUNNEL_AGENT_REFUSED'
}

/** An agent whose credential nobody could judge: refused at the door, but borne with for a while once it is inside. */
export class AgentUnjudged extends AgentRefused {}

/** A client whose certificate is not, or no longer, to be believed; the message is for the log. */
export class ClientDistrusted extends SallyportError {
  readonly code = 'TUNNEL_CLIENT_DISTRUSTED'
}
