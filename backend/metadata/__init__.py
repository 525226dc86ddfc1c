"""Kafka's metadata plane as values: records, the image that they add up to, what writes decide and what reads show.

One write from request to image, page by page:

1. `controller.decide` takes the request and the image and goes to the page of its API (`topic_writes`, `config_writes`,
   ...), which validates as Kafka does and returns an `Outcome`: the records to commit and the answer to give.
2. The driver has the records committed; they come back from the log as a `Batch` with its offset and epoch.
3. `Image.apply(batch)` gives the next image: each record changes one part (`topics`, `cluster`, `configs`, `acls`,
   `quotas`, `scram`, `features`), and all else is shared with the image before.
4. `reads.answer` takes a request and the images of a broker and goes to the page of its API (`topic_reads`, ...).

Pure: no socket, clock, loop, randomness or configuration; times and new ids come in as arguments. Imports `codec` only.
"""
