// A model in ONNX, run by onnxruntime-web: embed tokens, take one outer step. `ort` and the files come from the caller,
// so that the same code runs in a worker of the page and in Node for the tests.

export class Model {
  /** `known` is the model's description; `graphs` {embed, step} as bytes. */
  static async open(ort, known, graphs, options) {
    const create = (bytes) => ort.InferenceSession.create(bytes, { graphOptimizationLevel: "all", logSeverityLevel: 3, ...options });
    const model = new Model();
    Object.assign(model, known, { ort });
    model.first = { answer: Float32Array.from(known.first.answer), latent: Float32Array.from(known.first.latent) };
    model.embedding = await create(graphs.embed);
    model.network = await create(graphs.step);
    return model;
  }

  tensor(data, ...shape) {
    return new this.ort.Tensor(data instanceof Int32Array ? "int32" : "float32", data, shape);
  }

  /** The embedded inputs of some puzzles, a row each. */
  async embed(puzzles) {
    const tokens = Int32Array.from(puzzles.flatMap((puzzle) => [...puzzle]));
    const { inputs } = await this.embedding.run({ tokens: this.tensor(tokens, puzzles.length, this.cells) });
    return inputs.data;
  }

  /** The network; a failure is marked as its own, so that another runtime may be tried. */
  async run(feeds) {
    try {
      return await this.network.run(feeds);
    } catch (error) {
      throw Object.assign(new Error(String(error?.message ?? error)), { ofModel: true });
    }
  }

  async close() {
    await this.embedding.release();
    await this.network.release();
  }

  /** One outer step of `count` particles from `first` on; `inputs` has one row for all or one for each of the cloud. */
  async step({ inputs, first, count, answer, latent, noise }) {
    const { positions, width, inner_steps: inner } = this;
    const size = positions * width;
    const own = inputs.length === size ? inputs : inputs.subarray(first * size, (first + count) * size);
    const found = await this.run({
      inputs: this.tensor(own, own.length / size, positions, width),
      answer: this.tensor(answer, count, positions, width),
      latent: this.tensor(latent, count, positions, width),
      noise: this.tensor(noise, count, inner + 1, positions, width),
    });
    return {
      answer: found.new_answer.data, latent: found.new_latent.data, logits: found.logits.data, halt: [...found.halt_logit.data],
    };
  }
}
