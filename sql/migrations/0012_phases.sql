-- Where an attempt's time and money went, by SageMaker's secondary statuses.
ALTER TABLE attempt
    ADD COLUMN phases bigint[] CHECK (array_length(phases, 1) = 18);   -- elapsed ms, instance-seconds and micro-USD of each phase of cost_phase.def; NULL: settled before they were kept
