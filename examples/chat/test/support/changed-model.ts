import type { BindToolsInput } from '@langchain/core/language_models/chat_models';
import { LocalModel } from '../../server/agent/local-model.ts';

/** The local model with something that a test has changed, which stays so when it is given tools. */
export class ChangedModel<Change> extends LocalModel {
  protected readonly change: Change;

  constructor(change: Change, tools: readonly string[] = []) {
    super({}, tools);
    this.change = change;
  }

  override bindTools(tools: BindToolsInput[]): LocalModel {
    const Model = this.constructor as new (change: Change, tools: readonly string[]) => LocalModel;
    return new Model(
      this.change,
      tools.map((tool) => (tool as { name: string }).name),
    );
  }
}
